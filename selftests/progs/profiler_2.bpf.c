// SPDX-License-Identifier: GPL-2.0
/* The next version: the same code and tag; only the metadata differs. */
#define PROFILER_VERSION "2.0"
#include "profiler.bpf.c"
