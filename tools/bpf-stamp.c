// SPDX-License-Identifier: GPL-2.0
/*
 * Give metadata to BPF programs that are loaded: make a map as libbpf does for variables
 * bpf_metadata_KEY in .rodata, and bind it to each program. See bpf-stamp.8.
 *
 * The BTF of the map is a copy of the program's, with the section added. perf without the patches
 * of this repository looks up the type ids of the program's functions in the BTF of the map. A
 * copy has the same ids, so the records that perf writes have the right names.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/file.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define PREFIX		"bpf_metadata_"
#define PREFIX_LEN	(sizeof(PREFIX) - 1)
#define MAX_KEY_LEN	63	/* A metadata record in perf.data truncates longer keys. */
#define MAX_PAIRS	200	/* A metadata record has room for 202. */
#define MAX_VALUES	8192	/* JSON is 6 times as long at most, and perf accepts 64 KiB. */
#define MAX_MAPS	1024	/* of a program; the verifier accepts 64, and more can be bound */
/* How the kernel names files of programs and links */
#define BPF_FILE	"anon_inode:bpf"
/* Only root can open this file. Anybody who could open it could keep it locked. */
#define LOCK_FILE	"/run/bpf-stamp.lock"

enum { DONE, NOT_STAMPED, COULD_NOT_RUN };

struct program {
	int fd;
	struct bpf_prog_info info;
	struct bpf_func_info func;
	__u32 map_ids[MAX_MAPS];
	char name[512];
	char label[4 * 512 + 32];	/* for messages, and with escapes */
};

static struct {
	char name[PREFIX_LEN + MAX_KEY_LEN + 1];
	__u32 offset, size;
	int var;
} pairs[MAX_PAIRS];
static int nr_pairs;

/* The value of the map */
static char values[MAX_VALUES];
static size_t values_size;

/* Each map that was made, and the BTF of the programs that it is for */
static struct {
	__u32 btf_id, id;
} *maps;
static size_t nr_maps;

/* The programs that are selected by id */
static __u32 *ids;
static size_t nr_ids;

static bool even_without_btf;

static void print_help(FILE *out)
{
	fputs("usage: bpf-stamp [--even-without-btf] PROGRAMS KEY=VALUE...\n\n"
	      "Adds metadata to loaded BPF programs, as if they had declared it. The metadata\n"
	      "is kept until the program is unloaded. Programs that already have metadata are\n"
	      "not changed. PROGRAMS is one of:\n\n"
	      "  id ID        the program with this id\n"
	      "  name NAME    all programs with this name, as bpftool shows it\n"
	      "  tag TAG      all programs with this tag\n"
	      "  pinned PATH  the pinned program, or the program of the pinned link\n"
	      "  pid PID      all programs that this process holds, directly or by a link\n\n"
	      "  --even-without-btf  also stamp programs without BTF. Unpatched perf 6.18\n"
	      "               crashes on these (see the man page)\n"
	      "  -h, --help   this text\n\n"
	      "Prints the id and the name of each stamped program.\n"
	      "Exit status: 0 done, 1 a program was not stamped, 2 could not run.\n", out);
}

/* Returns the type of the value, or a negative error. */
static int btf__add_section(struct btf *btf)
{
	int index = btf__add_int(btf, "unsigned int", sizeof(int), 0);
	int type = btf__add_const(btf, btf__add_int(btf, "char", 1, BTF_INT_SIGNED));
	int section, err = 0;

	for (int i = 0; i < nr_pairs; i++)
		pairs[i].var = btf__add_var(btf, pairs[i].name, BTF_VAR_GLOBAL_ALLOCATED,
					    btf__add_array(btf, index, type, pairs[i].size));
	section = btf__add_datasec(btf, ".rodata", values_size);
	for (int i = 0; i < nr_pairs && !err; i++)
		err = btf__add_datasec_var_info(btf, pairs[i].var, pairs[i].offset, pairs[i].size);
	return err ?: section;
}

/* Returns an fd, or a negative error. bpftool looks for ".rodata" in the name of the map. */
static int create_map(__u32 btf_id)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);
	struct btf *btf = btf_id ? btf__load_from_kernel_by_id(btf_id) : btf__new_empty();
	int fd = -1, key = 0, err;

	if (!btf)
		return -errno;
	err = btf__add_section(btf);
	if (err < 0)
		goto out;
	opts.btf_value_type_id = err;
	err = btf__load_into_kernel(btf);
	if (err)
		goto out;
	opts.btf_fd = btf__fd(btf);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "stamp.rodata", sizeof(key), values_size, 1,
			    &opts);
	if (fd < 0)
		goto out;
	err = bpf_map_update_elem(fd, &key, values, 0) ?: bpf_map_freeze(fd);
	if (err)
		close(fd);
out:
	btf__free(btf);
	return err ?: fd;
}

/* Like create_map(), but programs with the same BTF share a map while one program holds it. */
static int get_map(__u32 btf_id)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	int fd, err;

	for (size_t i = 0; i < nr_maps; i++) {
		fd = maps[i].btf_id == btf_id ? bpf_map_get_fd_by_id(maps[i].id) : -1;
		if (fd >= 0)
			return fd;
	}
	fd = create_map(btf_id);
	if (fd < 0)
		return fd;
	err = bpf_map_get_info_by_fd(fd, &info, &len);
	if (err) {
		close(fd);
		return err;
	}
	maps = reallocarray(maps, nr_maps + 1, sizeof(*maps));
	if (!maps)
		error(COULD_NOT_RUN, ENOMEM, "list of maps");
	maps[nr_maps].btf_id = btf_id;
	maps[nr_maps++].id = info.id;
	return fd;
}

enum { NO_RODATA, RODATA, METADATA };

static int btf__look_for_metadata(const struct btf *btf, __u32 type)
{
	const struct btf_type *var, *section = btf__type_by_id(btf, type);
	__u32 nr;

	if (!section || !btf_is_datasec(section) ||
	    strncmp(btf__str_by_offset(btf, section->name_off), ".rodata", 7))
		return NO_RODATA;
	nr = btf_vlen(section);
	for (__u32 i = 0; i < nr; i++) {
		var = btf__type_by_id(btf, btf_var_secinfos(section)[i].type);
		if (!strncmp(btf__str_by_offset(btf, var->name_off), PREFIX, PREFIX_LEN))
			return METADATA;
	}
	return RODATA;
}

/* Returns a negative error if the map can't be read. */
static int look_for_metadata(__u32 map_id)
{
	int fd = bpf_map_get_fd_by_id(map_id);
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	struct btf *btf;
	int ret;

	if (fd < 0)
		return fd;
	ret = bpf_map_get_info_by_fd(fd, &info, &len);
	close(fd);
	if (ret || info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != 1 ||
	    !info.btf_value_type_id)
		return ret;
	btf = btf__load_from_kernel_by_id(info.btf_id);
	if (!btf)
		return -errno;
	ret = btf__look_for_metadata(btf, info.btf_value_type_id);
	btf__free(btf);
	return ret;
}

/* The kernel also accepts letters of Latin-1 in names. They are not UTF-8, so escape them. */
static void put_name(char *to, const char *name)
{
	for (; *name; name++)
		to += sprintf(to, isascii(*name) ? "%c" : "\\x%02x", (unsigned char)*name);
	*to = '\0';
}

/* As in bpftool: the kernel keeps only 15 characters, but the function has the whole name. */
static void program__set_name(struct program *prog)
{
	struct btf *btf = NULL;
	const struct btf_type *t;

	snprintf(prog->name, sizeof(prog->name), "%s", prog->info.name);
	if (strlen(prog->name) == BPF_OBJ_NAME_LEN - 1 && prog->info.nr_func_info)
		btf = btf__load_from_kernel_by_id(prog->info.btf_id);
	t = btf ? btf__type_by_id(btf, prog->func.type_id) : NULL;
	if (t)
		snprintf(prog->name, sizeof(prog->name), "%s",
			 btf__str_by_offset(btf, t->name_off));
	btf__free(btf);
	snprintf(prog->label, sizeof(prog->label), "program %u (", prog->info.id);
	put_name(prog->label + strlen(prog->label), prog->name);
	strcat(prog->label, ")");
}

static int program__open(struct program *prog, __u32 id)
{
	__u32 len = sizeof(prog->info);
	int err;

	prog->fd = bpf_prog_get_fd_by_id(id);
	if (prog->fd < 0)
		return prog->fd;
	prog->info = (struct bpf_prog_info) {
		.nr_map_ids = MAX_MAPS, .map_ids = (uintptr_t)prog->map_ids,
		.nr_func_info = 1, .func_info = (uintptr_t)&prog->func,
		.func_info_rec_size = sizeof(prog->func),
	};
	err = bpf_prog_get_info_by_fd(prog->fd, &prog->info, &len);
	if (err)
		close(prog->fd);
	else
		program__set_name(prog);
	return err;
}

/* Returns false if the program isn't stamped, and says why. */
static bool program__stamp(const struct program *prog)
{
	int map, err = 0, found = NO_RODATA;
	char name[4 * sizeof(prog->name)];

	if (prog->info.nr_map_ids > MAX_MAPS)
		err = -E2BIG;
	for (__u32 i = 0; !err && i < prog->info.nr_map_ids && found != METADATA; i++) {
		err = look_for_metadata(prog->map_ids[i]);
		found = err > found ? err : found;
		err = err < 0 ? err : 0;
	}
	if (err) {
		error(0, -err, "%s is not stamped: its maps can't be read", prog->label);
		return false;
	}
	if (found == METADATA) {
		error(0, 0,
		      "%s is not stamped: it has metadata\n  next: to see the metadata, run bpftool prog show id %u",
		      prog->label, prog->info.id);
		return false;
	}
	/* Unpatched perf 6.18 takes func_info of each function for granted. */
	if (prog->info.nr_func_info < prog->info.nr_prog_tags && !even_without_btf) {
		error(0, 0,
		      "%s is not stamped: %s, and unpatched perf 6.18 can crash or write wrong names\n"
		      "  next: bpf-owners --perf >FILE, and perf inject --bpf-metadata-add FILE; or --even-without-btf",
		      prog->label, prog->info.btf_id ? "its BTF lacks functions" :
						       "it has no BTF");
		return false;
	}
	map = get_map(prog->info.btf_id);
	if (map < 0) {
		error(0, -map, "%s is not stamped: can't make a map", prog->label);
		return false;
	}
	err = bpf_prog_bind_map(prog->fd, map, NULL);
	close(map);
	if (err) {
		error(0, -err, "%s is not stamped: can't bind a map (this needs Linux v5.10)",
		      prog->label);
		return false;
	}
	put_name(name, prog->name);
	printf("%u %s\n", prog->info.id, name);
	if (found == RODATA)
		error(0, 0,
		      "%s is stamped, but bpftool won't show the stamp: it shows the first .rodata map only",
		      prog->label);
	return true;
}

static void add_id(__u32 id)
{
	for (size_t i = 0; i < nr_ids; i++) {
		if (ids[i] == id)
			return;
	}
	ids = reallocarray(ids, nr_ids + 1, sizeof(*ids));
	if (!ids)
		error(COULD_NOT_RUN, ENOMEM, "list of programs");
	ids[nr_ids++] = id;
}

/*
 * Read only the fdinfo of BPF's files: that of others, such as a dma-buf, may contain names that
 * somebody else has chosen, with newlines. In the fdinfo of a link, such names come after its
 * prog_id, so only the first prog_id counts.
 */
static void add_fd(int process, const char *number)
{
	char path[64], line[256];
	FILE *file;
	__u32 id;
	int fd;

	snprintf(path, sizeof(path), "fd/%s", number);
	if (readlinkat(process, path, line, sizeof(line)) < (ssize_t)strlen(BPF_FILE) ||
	    strncmp(line, BPF_FILE, strlen(BPF_FILE)))
		return;
	snprintf(path, sizeof(path), "fdinfo/%s", number);
	fd = openat(process, path, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "prog_id:\t%u", &id) != 1)
			continue;
		add_id(id);
		break;
	}
	if (file)
		fclose(file);
}

static int open_process(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		error(COULD_NOT_RUN, errno, "%s", path);
	return fd;
}

static void add_pid(__u32 pid)
{
	struct dirent *entry;
	int process, fd;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	process = open_process(path);
	fd = openat(process, "fdinfo", O_RDONLY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		error(COULD_NOT_RUN, errno,
		      "process %u: its descriptors can't be read (this needs CAP_SYS_PTRACE)", pid);
	while ((entry = readdir(dir)))
		add_fd(process, entry->d_name);
	closedir(dir);
	close(process);
}

static void add_pinned(const char *pinned)
{
	int process = open_process("/proc/self"), fd = bpf_obj_get(pinned);
	char number[16];

	if (fd < 0)
		error(COULD_NOT_RUN, errno, "pinned %s", pinned);
	snprintf(number, sizeof(number), "%d", fd);
	add_fd(process, number);
	close(process);
	close(fd);
}

static __u32 parse_number(const char *kind, const char *text)
{
	unsigned long number;
	char *end;

	number = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || number > UINT_MAX)
		error(COULD_NOT_RUN, 0, "%s %s: not a number", kind, text);
	return number;
}

static void parse_pair(const char *arg)
{
	size_t len = 0, size;

	while (isalnum((unsigned char)arg[len]) || arg[len] == '_')
		len++;
	/* This counts the '=' in place of the NUL at the end. */
	size = strlen(arg + len);
	if (!len || arg[len] != '=')
		error(COULD_NOT_RUN, 0,
		      "'%s' is not KEY=VALUE\n  next: use letters, digits and '_' for KEY", arg);
	if (len > MAX_KEY_LEN)
		error(COULD_NOT_RUN, 0, "key %.*s is longer than %d characters",
		      MAX_KEY_LEN + 1, arg, MAX_KEY_LEN);
	if (nr_pairs == MAX_PAIRS)
		error(COULD_NOT_RUN, 0, "more than %d keys", MAX_PAIRS);
	if (size > MAX_VALUES - values_size)
		error(COULD_NOT_RUN, 0, "the values are longer than %d bytes", MAX_VALUES);
	snprintf(pairs[nr_pairs].name, sizeof(pairs->name), PREFIX "%.*s", (int)len, arg);
	for (int i = 0; i < nr_pairs; i++) {
		if (!strcmp(pairs[i].name, pairs[nr_pairs].name))
			error(COULD_NOT_RUN, 0, "key %.*s is given twice", (int)len, arg);
	}
	pairs[nr_pairs].offset = values_size;
	pairs[nr_pairs++].size = size;
	memcpy(values + values_size, arg + len + 1, size);
	values_size += size;
}

static bool is_selected(const struct program *prog, const char *kind, const char *text)
{
	char tag[2 * BPF_TAG_SIZE + 1];

	if (!strcmp(kind, "name"))
		return *text && !strcmp(prog->name, text);
	for (int i = 0; i < BPF_TAG_SIZE; i++)
		sprintf(tag + 2 * i, "%02x", prog->info.tag[i]);
	return !strcmp(tag, text);
}

/* Returns the exit status. */
static int stamp(const char *kind, const char *text)
{
	static struct program prog;
	const bool by_id = strcmp(kind, "name") && strcmp(kind, "tag");
	bool found = false, failed = false;
	__u32 id = 0;
	int err;

	for (size_t i = 0; by_id ? i < nr_ids : !bpf_prog_get_next_id(id, &id); i++) {
		id = by_id ? ids[i] : id;
		err = program__open(&prog, id);
		/* Somebody may have unloaded the program meanwhile. */
		if (err == -ENOENT)
			continue;
		if (err) {
			error(0, -err, "program %u can't be opened", id);
			failed = true;
			continue;
		}
		if (by_id || is_selected(&prog, kind, text)) {
			found = true;
			failed |= !program__stamp(&prog);
		}
		close(prog.fd);
	}
	if (!found)
		error(COULD_NOT_RUN, 0,
		      "%s %s: no BPF program\n  next: to list all programs, run bpftool prog show", kind, text);
	return failed ? NOT_STAMPED : DONE;
}

/*
 * While this process looks for metadata and binds the map, no other bpf-stamp may stamp. The lock
 * ends with this process.
 */
static void take_lock(void)
{
	int fd = open(LOCK_FILE, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX))
		error(COULD_NOT_RUN, errno, "can't lock %s", LOCK_FILE);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "even-without-btf", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *kind, *text;
	int opt, status;
	__u32 id;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) == 'e')
		even_without_btf = true;
	if (opt == 'h') {
		print_help(stdout);
		return DONE;
	}
	if (opt != -1 || argc - optind < 3) {
		print_help(stderr);
		return COULD_NOT_RUN;
	}
	kind = argv[optind++];
	text = argv[optind++];
	while (optind < argc)
		parse_pair(argv[optind++]);

	libbpf_set_print(NULL);
	if (bpf_prog_get_next_id(0, &id) && errno == EPERM)
		error(COULD_NOT_RUN, 0,
		      "%s %s: finding programs needs CAP_SYS_ADMIN\n  next: run it as root",
		      kind, text);
	if (!strcmp(kind, "id"))
		add_id(parse_number(kind, text));
	else if (!strcmp(kind, "pid"))
		add_pid(parse_number(kind, text));
	else if (!strcmp(kind, "pinned"))
		add_pinned(text);
	else if (strcmp(kind, "name") && strcmp(kind, "tag"))
		error(COULD_NOT_RUN, 0, "'%s' is not id, name, tag, pinned or pid\n  next: --help",
		      kind);
	take_lock();
	status = stamp(kind, text);
	if (fclose(stdout))
		error(NOT_STAMPED, errno, "the list of stamped programs can't be written");
	return status;
}
