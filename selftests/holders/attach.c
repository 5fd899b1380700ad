// SPDX-License-Identifier: GPL-2.0
/*
 * Attach BPF programs to perf events, in each way that the kernel has, and to other hooks. The commands come from
 * standard input. Everything is undone when the input ends.
 *
 *   load FILE                 load the object, unload the previous one; prints
 *                             "program ID NAME", and "map ID NAME" for its maps in .maps
 *   attach                    attach the programs of the object as their sections say
 *   event NAME PERIOD WHOM    open an event: WHOM is "all" for each CPU, "self" for
 *                             this process
 *   ioctl                     attach the program by PERF_EVENT_IOC_SET_BPF
 *   link                      attach the program by BPF_LINK_CREATE; prints "link ID"
 *   close                     close the event and the link, which also detaches the program
 *   touch N                   touch N new pages
 *
 * The answer to each command ends with "ok", or "error TEXT" if it failed.
 */
#define _GNU_SOURCE
#include <errno.h>
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
static int prog_fd = -1;
static int events[MAX_EVENTS];
static int links[MAX_EVENTS];
static int nr_events, nr_links;

static int print_id(const char *what, int fd, const char *name)
{
	/* The infos of programs, maps and links begin alike. */
	struct { __u32 type, id; } info;
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	printf("%s %u %s\n", what, info.id, name);
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
		err = err ?: print_id("program", prog_fd, bpf_program__name(prog));
	}
	bpf_object__for_each_map(map, object) {
		if (!err && !bpf_map__is_internal(map))
			err = print_id("map", bpf_map__fd(map), bpf_map__name(map));
	}
	return err;
}

static int do_attach(const char *)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
		if (!bpf_program__attach(prog))
			return -errno;
	return 0;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	events[nr_events++] = fd;
	return 0;
}

static int do_event(const char *args)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int nr_cpus = sysconf(_SC_NPROCESSORS_CONF), err;
	unsigned long long period;
	char name[32], whom[8];
	size_t i = 0;

	if (nr_events || sscanf(args, "%31s %llu %7s", name, &period, whom) != 3)
		return -EINVAL;
	while (i < sizeof(known_events) / sizeof(known_events[0]) && strcmp(known_events[i].name, name))
		i++;
	if (i == sizeof(known_events) / sizeof(known_events[0]))
		return -ENOENT;
	attr.type = known_events[i].type;
	attr.config = known_events[i].config;
	attr.sample_period = period;
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

static int do_ioctl(const char *)
{
	for (int i = 0; i < nr_events; i++) {
		if (ioctl(events[i], PERF_EVENT_IOC_SET_BPF, prog_fd))
			return -errno;
	}
	return nr_events ? 0 : -ENOENT;
}

static int do_link(const char *)
{
	int err = nr_events ? 0 : -ENOENT;

	for (int i = 0; !err && i < nr_events; i++) {
		int fd = bpf_link_create(prog_fd, events[i], BPF_PERF_EVENT, NULL);

		if (fd < 0)
			return fd;
		links[nr_links++] = fd;
		err = print_id("link", fd, "");
	}
	return err;
}

static int do_close(const char *)
{
	while (nr_links)
		close(links[--nr_links]);
	while (nr_events)
		close(events[--nr_events]);
	return 0;
}

static int do_touch(const char *args)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	int nr = atoi(args);
	volatile char *pages;

	pages = mmap(NULL, nr * page_size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -errno;
	/* One fault for each page. A kernel without huge pages does not know the advice. */
	madvise((void *)pages, nr * page_size, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		pages[i * page_size] = 1;
	munmap((void *)pages, nr * page_size);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *args);
} commands[] = {
	{ "load", do_load }, { "attach", do_attach }, { "event", do_event },
	{ "ioctl", do_ioctl }, { "link", do_link }, { "close", do_close }, { "touch", do_touch },
};

static int run(const char *command, const char *args)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(command, commands[i].name))
			return commands[i].run(args);
	}
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
