# SPDX-License-Identifier: GPL-2.0
#
# Draws NAME.TYPE in DIR from NAME.tsv: cost against the number of programs.
# Columns of bench.py, growth(): 1 is N, then 4 a figure, the 4th is "more than unpatched".

set term (type eq "svg" ? "svg" : "pngcairo") size 1100,980 font "DejaVu Sans,10"
set output dir."/".name.".".type
data = dir."/".name.".tsv"
set multiplot layout 3,2 margins 0.07,0.97,0.05,0.87 spacing 0.09,0.09
set label 1 (name eq "own" ? "Programs with an object each" : "20 programs an object, which share its map").", 3 functions, 4 keys" at screen 0.5,0.98 center font ",13"
set label 2 system("cat ".dir."/title") at screen 0.5,0.955 center font ",9"
set key off
set grid
set xlabel "BPF programs" offset 0,0.5
set yrange [0:*]
set xrange [0:*]
set offsets 0,graph 0.03,graph 0.05,0
set style data yerrorlines
# Lines that lie on each other can be told apart, and also without colours.
set linetype 1 lc rgb "#000000" pt 1 lw 1.5
set linetype 2 lc rgb "#0072b2" pt 4 lw 1.5
set linetype 3 lc rgb "#d55e00" pt 6 lw 1.5 dt 2
set linetype 4 lc rgb "#009e73" pt 8 lw 1.5 dt 3
set linetype 5 lc rgb "#cc79a7" pt 2 lw 1.5 dt 4
set linetype 6 lc rgb "#e69f00" pt 10 lw 1.5 dt 5

set title "user + sys of perf record, start and end [s]"
plot for [i=0:*] data index i using 1:2:3:4 lt i+1
unset label
set yrange [*:*]
set title "more than unpatched [s]"
plot for [i=0:*] data index i using 1:5 with linespoints lt i+1
set yrange [0:*]
set title "perf.data [MiB]"
plot for [i=0:*] data index i using 1:6:7:8 lt i+1
set yrange [*:*]
set title "more than unpatched [MiB]"
plot for [i=0:*] data index i using 1:9 with linespoints lt i+1
set yrange [0:*]
set title "peak memory [MiB]"
plot for [i=0:*] data index i using 1:14:15:16 lt i+1
set title "bpf() calls [1000]"
set key top left reverse Left samplen 4
plot for [i=0:*] data index i using 1:18:19:20 lt i+1 title columnheader(1)
unset multiplot
