// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer passes bytes to perf's readers of PERF_RECORD_BPF_METADATA and of the block in the
 * header. scripts/fuzz.sh links this file with the objects of perf, and runs it.
 *
 * An input is a byte of flags (see below), then records or a block. Records and blocks are
 * put into a good file with four samples. malformed.py wrote it; PBM_FUZZ_TEMPLATES is its
 * directory. Records go between the second and the third sample. A block goes to the end; a pipe
 * has none. Only code of this series is fuzzed: each record gets the type of metadata, and a size
 * that does not move the other records.
 *
 * Besides reports of the sanitizers, a lost sample is a finding, and so is output that no
 * terminal should get.
 */
#include <byteswap.h>
#include <iconv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <linux/err.h>
#include <internal/lib.h>
#include <perf/core.h>
#include "util/bpf-event.h"
#include "util/bpf-metadata.h"
#include "util/data.h"
#include "util/debug.h"
#include "util/dso.h"
#include "util/env.h"
#include "util/event.h"
#include "util/header.h"
#include "util/machine.h"
#include "util/map.h"
#include "util/sample.h"
#include "util/session.h"
#include "util/symbol.h"
#include "util/symbol_conf.h"
#include "util/synthetic-events.h"
#include "util/tool.h"

enum input_flags {
	INPUT_SWAPPED	= 1,	/* from a machine with the other byte order */
	INPUT_PIPE	= 2,	/* the format of a pipe */
	INPUT_CUT	= 4,	/* the pipe ends in the middle of the records */
	INPUT_BLOCK	= 8,	/* a block, not records */
	INPUT_FLAGS	= 15,
};

/* In v7.3, callbacks get the tool, and not the evsel. The Makefile defines this. */
#ifdef HAS_TOOL_ARG
#define TOOL_ARG	const struct perf_tool *tool __maybe_unused,
#define TOOL		tool,
#define EVSEL_ARG
#else
#define TOOL_ARG
#define TOOL
#define EVSEL_ARG	struct evsel *evsel __maybe_unused,
#endif

#define MAGIC		"BPFMETA2"
#define MAX_FILE	(128 * 1024)
#define NR_SAMPLES	4
#define NR_BEFORE	2	/* samples before the records */

struct file {
	unsigned char	bytes[MAX_FILE];
	size_t		size;
	size_t		insert_at;	/* the third sample */
	size_t		block_at;
	bool		swapped;
	bool		is_pipe;
};

static struct file templates[(INPUT_PIPE | INPUT_SWAPPED) + 1];

static struct {
	struct perf_tool	tool;
	struct perf_session	*session;
	FILE			*out;
	char			*text;
	size_t			text_size;
	int			nr_samples;
} run;

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerRunDriver(int *argc, char ***argv,
			int (*callback)(const uint8_t *input, size_t size));
int __wrap_main(int argc, char **argv);

static void __attribute__((format(printf, 1, 2), noreturn)) finding(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "FINDING: ");
	vfprintf(stderr, fmt, args);
	va_end(args);
	if (run.out && !fflush(run.out))
		fprintf(stderr, "\nperf printed:\n%s", run.text);
	fprintf(stderr, "\n");
	abort();
}

static u64 file__swap(const struct file *file, u64 value, size_t size)
{
	return file->swapped ? bswap_64(value) >> (64 - 8 * size) : value;
}

static u64 file__get(const struct file *file, size_t at, size_t size)
{
	u64 value = 0;

	if (at + size > file->size)
		return 0;
	memcpy(&value, file->bytes + at, size);
	return file__swap(file, value, size);
}

static void file__put(struct file *file, size_t at, size_t size, u64 value)
{
	value = file__swap(file, value, size);
	memcpy(file->bytes + at, &value, size);
}

static void file__add(struct file *file, size_t at, s64 number)
{
	file__put(file, at, 8, file__get(file, at, 8) + number);
}

/* The offsets in perf_file_header */
#define AT_DATA_OFFSET	40
#define AT_DATA_SIZE	48
#define AT_FEATURES	72
#define PIPE_HEADER	16

static int file__nr_features(const struct file *file)
{
	int nr = 0;

	for (int word = 0; word < 4; word++)
		nr += __builtin_popcountll(file__get(file, AT_FEATURES + word * 8, 8));
	return nr;
}

static size_t file__sections(const struct file *file)
{
	return file__get(file, AT_DATA_OFFSET, 8) + file__get(file, AT_DATA_SIZE, 8);
}

static void file__find_insert_at(struct file *file)
{
	size_t at = file->is_pipe ? PIPE_HEADER : file__get(file, AT_DATA_OFFSET, 8);
	int nr = 0;

	while (at < file->size) {
		if (file__get(file, at, 4) == PERF_RECORD_SAMPLE && nr++ == NR_BEFORE)
			break;
		at += file__get(file, at + 6, 2) ?: file->size;
	}
	file->insert_at = at;
}

static void file__read(struct file *file, const char *dir, int flags)
{
	unsigned char *block;
	char path[PATH_MAX];
	FILE *fp;

	file->swapped = flags & INPUT_SWAPPED;
	file->is_pipe = flags & INPUT_PIPE;
	snprintf(path, sizeof(path), "%s/%d", dir, flags);
	fp = fopen(path, "r");
	if (fp) {
		file->size = fread(file->bytes, 1, sizeof(file->bytes) / 2, fp);
		fclose(fp);
	}
	file__find_insert_at(file);
	block = memmem(file->bytes, file->size, MAGIC, strlen(MAGIC));
	if (file->insert_at >= file->size || (!file->is_pipe && !block)) {
		fprintf(stderr, "fuzz: %s: not %d samples and a block\n", path, NR_SAMPLES);
		exit(2);
	}
	file->block_at = block - file->bytes;
}

static void file__insert_records(struct file *file, const uint8_t *input, size_t size)
{
	size_t at = file->insert_at, end = at + size, sections;
	u16 record_size;

	memmove(file->bytes + end, file->bytes + at, file->size - at);
	memcpy(file->bytes + at, input, size);
	file->size += size;

	for (; at < end; at += record_size) {
		record_size = file__get(file, at + 6, sizeof(record_size)) & ~7;
		if (record_size < sizeof(struct perf_event_header) || record_size > end - at)
			record_size = min(end - at, (size_t)0xfff8);
		file__put(file, at, 4, PERF_RECORD_BPF_METADATA);
		file__put(file, at + 6, 2, record_size);
	}
	if (file->is_pipe)
		return;
	file__add(file, AT_DATA_SIZE, size);
	sections = file__sections(file);
	for (int i = 0; i < file__nr_features(file); i++)
		file__add(file, sections + i * 16, size);
}

/* The feature of BPF programs is the last in the table, and in the file. */
static void file__set_block(struct file *file, const uint8_t *input, size_t size)
{
	size_t section = file__sections(file) + (file__nr_features(file) - 1) * 16;
	size_t at = file->block_at;

	file__add(file, section + 8, (s64)(at + size) - (s64)file->size);
	memcpy(file->bytes + at, input, size);
	file->size = at + size;
}

static int file__open(const struct file *file)
{
	int fd = memfd_create("fuzz", 0);

	if (fd < 0 || write(fd, file->bytes, file->size) != (ssize_t)file->size ||
	    lseek(fd, 0, SEEK_SET)) {
		fprintf(stderr, "fuzz: memfd: %m\n");
		exit(2);
	}
	return fd;
}

/* Like a report */
static void print_metadata(u32 id, const char *text)
{
	char *shown = bpf_metadata__format(text);

	fprintf(run.out, "%u %s\n", id, shown ?: "");
	free(shown);
}

static void print_program(struct dso *dso)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);

	if (dso__binary_type(dso) == DSO_BINARY_TYPE__BPF_PROG_INFO && prog->env)
		print_metadata(prog->id, perf_env__bpf_metadata(prog->env, prog->node));
}

static int process_sample(const struct perf_tool *tool __maybe_unused, union perf_event *event,
			  struct perf_sample *sample, EVSEL_ARG struct machine *machine)
{
	struct addr_location al;

	run.nr_samples++;
	addr_location__init(&al);
	if (!machine__resolve(machine, &al, sample) && al.map)
		print_program(map__dso(al.map));
	addr_location__exit(&al);
	(void)event;
	return 0;
}

static int process_record(TOOL_ARG struct perf_session *session, union perf_event *event)
{
	perf_event__fprintf_bpf_metadata(event, run.out);
	(void)session;
	return 0;
}

/* As perf report does: ignore unknown features */
static int process_feature(TOOL_ARG struct perf_session *session, union perf_event *event)
{
	if (event->feat.feat_id >= HEADER_LAST_FEATURE)
		return 0;
	return perf_event__process_feature(TOOL session, event);
}

static int ignore_event(const struct perf_tool *tool __maybe_unused,
			union perf_event *event __maybe_unused,
			struct perf_sample *sample __maybe_unused,
			struct machine *machine __maybe_unused)
{
	return 0;
}

static void print_node(struct bpf_prog_info_node *node, void *data __maybe_unused)
{
	if (node->metadata)
		print_metadata(node->id, node->metadata);
}

/* UTF-8 without C0, DEL and C1; newlines and tabs are allowed. */
static void check_text(char *s, size_t size)
{
	iconv_t to_utf32 = iconv_open("UTF-32LE", "UTF-8");
	char *text = s;

	while (size) {
		u32 c = 0;
		char *out = (char *)&c;
		size_t left = sizeof(c);

		if (iconv(to_utf32, &s, &size, &out, &left) == (size_t)-1 && left)
			finding("byte %#x is printed, which isn't UTF-8:\n%s", *s, text);
		if ((c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0))
			finding("the control character %#x is printed:\n%s", c, text);
	}
	iconv_close(to_utf32);
}

static void read_file(const struct file *file, int want_samples)
{
	char path[64] = "-";
	struct perf_data data = {
		.path	 = path,
		.mode	 = PERF_DATA_MODE_READ,
		.force	 = true,
	};
	int fd = file__open(file), err;

	if (file->is_pipe)
		data.file.fd = fd;
	else
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	run.nr_samples = 0;
	run.out = open_memstream(&run.text, &run.text_size);
	debug_set_file(run.out);

	run.session = perf_session__new(&data, &run.tool);
	if (IS_ERR(run.session))
		finding("the file can't be opened: %ld", PTR_ERR(run.session));
	err = perf_session__process_events(run.session);
	if (err)
		finding("the events can't be processed: %d", err);
	if (run.nr_samples < want_samples)
		finding("%d samples of %d are lost", want_samples - run.nr_samples, want_samples);
	if (!file->is_pipe)
		perf_session__fprintf_info(run.session, run.out, /*full=*/true);
	perf_env__iterate_bpf_prog_info(&run.session->header.env, print_node, NULL);
	if (perf_event__synthesize_bpf_metadata(&run.tool, run.session, ignore_event))
		finding("the table can't be written");
	perf_session__delete(run.session);

	debug_set_file(stderr);
	fclose(run.out);
	run.out = NULL;
	check_text(run.text, run.text_size);
	free(run.text);
	if (!file->is_pipe)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct file file;
	int want = NR_SAMPLES, flags;

	if (!size || (input[0] & ~INPUT_FLAGS) || size > MAX_FILE / 2)
		return -1;
	flags = *input++;
	size--;

	/* A pipe has no block, and only a pipe is cut. */
	if (flags & INPUT_PIPE ? flags & INPUT_BLOCK : flags & INPUT_CUT)
		return -1;
	file = templates[flags & (INPUT_SWAPPED | INPUT_PIPE)];
	if (flags & INPUT_BLOCK) {
		file__set_block(&file, input, size);
	} else {
		file__insert_records(&file, input, size & ~7);
		if (flags & INPUT_CUT) {
			file.size = file.insert_at + size / 2;
			want = NR_BEFORE;
		}
	}
	read_file(&file, want);
	return 0;
}

static int print_libperf(enum libperf_print_level level, const char *fmt, va_list args)
{
	return veprintf(level, verbose, fmt, args);
}

/* Replaces perf's main(): begins like it, reads the good files, and sets up the tool. */
int __wrap_main(int argc, char **argv)
{
	const char *dir = getenv("PBM_FUZZ_TEMPLATES");

	if (!dir) {
		fprintf(stderr, "%s: PBM_FUZZ_TEMPLATES is not set, use scripts/fuzz.sh\n", argv[0]);
		return 2;
	}
	perf_debug_setup();
	libperf_init(print_libperf);
	for (int flags = 0; flags < (int)ARRAY_SIZE(templates); flags++)
		file__read(&templates[flags], dir, flags);
	perf_tool__init(&run.tool, /*ordered_events=*/true);
	run.tool.sample = process_sample;
	run.tool.attr = perf_event__process_attr;
	run.tool.feature = process_feature;
	run.tool.ksymbol = perf_event__process_ksymbol;
	run.tool.bpf = perf_event__process_bpf;
	run.tool.bpf_metadata = process_record;
	run.tool.ordering_requires_timestamps = true;
	symbol_conf.bpf_progs = true;
	verbose = 1;
	symbol__init(NULL);
	return LLVMFuzzerRunDriver(&argc, &argv, LLVMFuzzerTestOneInput);
}
