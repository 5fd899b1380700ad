// SPDX-License-Identifier: GPL-2.0
/*
 * Attach BPF programs to perf events, in each way that the kernel has, and to other hooks. The commands come from
 * standard input. Everything is undone when the input ends.
 *
 *   load FILE                 load the object, unload the previous one; prints
 *                             "program ID NAME", and "map ID NAME" for its maps in .maps
 *   fexit FILE                load an object whose programs are called at the end of the
 *                             program that was loaded last, and unload this object
 *   attach                    attach the programs of the object as their sections say
 *   event NAME PERIOD WHOM    open an event: WHOM is "all" for each CPU, "self" for
 *                             this process; PERIOD may be "freq N"
 *   ioctl                     attach the program by PERF_EVENT_IOC_SET_BPF
 *   link COOKIE               attach the program by BPF_LINK_CREATE; prints "link ID"
 *   unlink                    remove the link; the event stays
 *   close                     close the event, which also detaches the program
 *   touch N                   touch N new pages; prints "code BEGIN END" of the code that
 *                             does it, and "page ADDRESS" for each page
 *   burn N                    the same, but print no addresses of pages
 *
 * The answer to each command ends with "ok", or "error TEXT" if it failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#define MAX_EVENTS 1024

static const struct {
	const char *name;
	__u32 type;
	__u64 config;
} known_events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
};

static struct bpf_object *object;
static const char *prog_name;
static int prog_fd = -1;
static int events[MAX_EVENTS];
static int links[MAX_EVENTS];
static int nr_events, nr_links;

/* The section of touch(), which the linker marks. */
extern const char __start_touch_text[], __stop_touch_text[];

static int print_program(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return -errno;
	printf("program %u %s\n", info.id, bpf_program__name(prog));
	return 0;
}

static int print_map(const struct bpf_map *map)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	if (bpf_map__is_internal(map))
		return 0;
	if (bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &len))
		return -errno;
	printf("map %u %s\n", info.id, bpf_map__name(map));
	return 0;
}

static int do_load(const char *path)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	int err;

	bpf_object__close(object);
	prog_fd = -1;
	object = bpf_object__open_file(path, NULL);
	if (!object)
		return -errno;
	err = bpf_object__load(object);
	bpf_object__for_each_program(prog, object) {
		prog_fd = bpf_program__fd(prog);
		prog_name = bpf_program__name(prog);
		err = err ?: print_program(prog);
	}
	bpf_object__for_each_map(map, object)
		err = err ?: print_map(map);
	return err;
}

static int do_fexit(const char *path)
{
	struct bpf_object *fexit = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	int err = 0;

	if (!fexit)
		return -errno;
	bpf_object__for_each_program(prog, fexit)
		err = err ?: bpf_program__set_attach_target(prog, prog_fd, prog_name);
	err = err ?: bpf_object__load(fexit);
	bpf_object__close(fexit);
	return err;
}

static int do_attach(void)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
		if (!bpf_program__attach(prog))
			return -errno;
	return 0;
}

static int parse_event(char *args, struct perf_event_attr *attr, char *whom)
{
	char name[32];
	unsigned long long period;

	*attr = (struct perf_event_attr) { .size = sizeof(*attr) };
	if (sscanf(args, "%31s freq %llu %7s", name, &period, whom) == 3)
		attr->freq = 1;
	else if (sscanf(args, "%31s %llu %7s", name, &period, whom) != 3)
		return -EINVAL;
	attr->sample_period = period;
	for (size_t i = 0; i < sizeof(known_events) / sizeof(known_events[0]); i++) {
		if (strcmp(known_events[i].name, name))
			continue;
		attr->type = known_events[i].type;
		attr->config = known_events[i].config;
		return 0;
	}
	return -ENOENT;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	events[nr_events++] = fd;
	return 0;
}

static int do_event(char *args)
{
	int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct perf_event_attr attr;
	char whom[8];
	int err;

	err = parse_event(args, &attr, whom);
	if (err || nr_events)
		return err ?: -EBUSY;
	if (!strcmp(whom, "self"))
		return open_event(&attr, 0, -1);
	for (int cpu = 0; cpu < nr_cpus && cpu < MAX_EVENTS; cpu++) {
		err = open_event(&attr, -1, cpu);
		/* A CPU may be offline. */
		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

static int do_ioctl(void)
{
	for (int i = 0; i < nr_events; i++) {
		if (ioctl(events[i], PERF_EVENT_IOC_SET_BPF, prog_fd))
			return -errno;
	}
	return nr_events ? 0 : -ENOENT;
}

static int print_link(int fd)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	printf("link %u\n", info.id);
	return 0;
}

static int do_link(const char *args)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		.perf_event.bpf_cookie = strtoull(args, NULL, 0));
	int err;

	for (int i = 0; i < nr_events; i++) {
		int fd = bpf_link_create(prog_fd, events[i], BPF_PERF_EVENT, &opts);

		if (fd < 0)
			return fd;
		links[nr_links++] = fd;
		err = print_link(fd);
		if (err)
			return err;
	}
	return nr_events ? 0 : -ENOENT;
}

static int do_unlink(void)
{
	while (nr_links)
		close(links[--nr_links]);
	return 0;
}

static int do_close(void)
{
	do_unlink();
	while (nr_events)
		close(events[--nr_events]);
	return 0;
}

__attribute__((noinline, section("touch_text")))
static void touch(volatile char *pages, size_t page_size, int nr)
{
	for (int i = 0; i < nr; i++)
		pages[i * page_size] = 1;
}

static int do_touch(const char *args, bool print)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	int nr = atoi(args);
	char *pages;

	pages = mmap(NULL, nr * page_size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -errno;
	/* One fault for each page. A kernel without huge pages does not know the advice. */
	madvise(pages, nr * page_size, MADV_NOHUGEPAGE);
	/* The page of the code itself must not fault later. */
	(void)*(const volatile char *)__start_touch_text;
	touch(pages, page_size, nr);
	printf("code %ju %ju\n", (uintmax_t)(uintptr_t)__start_touch_text,
	       (uintmax_t)(uintptr_t)__stop_touch_text);
	for (int i = 0; print && i < nr; i++)
		printf("page %ju\n", (uintmax_t)(uintptr_t)(pages + i * page_size));
	munmap(pages, nr * page_size);
	return 0;
}

static int run(const char *command, char *args)
{
	if (!strcmp(command, "load"))
		return do_load(args);
	if (!strcmp(command, "fexit"))
		return do_fexit(args);
	if (!strcmp(command, "attach"))
		return do_attach();
	if (!strcmp(command, "event"))
		return do_event(args);
	if (!strcmp(command, "ioctl"))
		return do_ioctl();
	if (!strcmp(command, "link"))
		return do_link(args);
	if (!strcmp(command, "unlink"))
		return do_unlink();
	if (!strcmp(command, "close"))
		return do_close();
	if (!strcmp(command, "touch"))
		return do_touch(args, true);
	if (!strcmp(command, "burn"))
		return do_touch(args, false);
	return -ENOSYS;
}

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		char *args;
		int err;

		line[strcspn(line, "\n")] = '\0';
		args = line + strcspn(line, " ");
		if (*args)
			*args++ = '\0';
		err = run(line, args);
		if (err)
			printf("error %s %s: %s\n", line, args, strerror(-err));
		else
			printf("ok\n");
		fflush(stdout);
	}
	return 0;
}
