# SPDX-License-Identifier: GPL-2.0
#
# Draws NAME.TYPE in DIR from NAME.tsv: user+sys of the commands that read a file.
# Columns of bench.py, reading(): label, then median, min, max of three commands.

set term (type eq "svg" ? "svg" : "pngcairo") size 1100,520 font "DejaVu Sans,10"
set output dir."/".name.".".type
set label 1 "user + sys of reading a file [ms]" at screen 0.5,0.96 center font ",13"
set label 2 system("cat ".dir."/title") at screen 0.5,0.91 center font ",9"
set tmargin 6
set style data histograms
set style histogram errorbars gap 2 lw 1
set style fill solid 0.7 border
set yrange [0:*]
set grid y
set key outside right top reverse Left
set xtics rotate by -20 scale 0
plot dir."/".name.".tsv" using 2:3:4:xtic(1) title "report --stdio", \
	"" using 5:6:7 title "script", \
	"" using 8:9:10 title "inject"
