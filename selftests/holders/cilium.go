// SPDX-License-Identifier: GPL-2.0
//
// Load an object with cilium/ebpf and hold its programs until standard input ends (as
// hold.c does). With -bind, .rodata is bound to every program, even without a reference.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sort"

	"github.com/cilium/ebpf"
)

func main() {
	bind := flag.Bool("bind", false, "bind .rodata to each program")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("cilium: ")

	spec, err := ebpf.LoadCollectionSpec(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		log.Fatal(err)
	}

	var names []string
	for name := range coll.Programs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		prog := coll.Programs[name]
		if *bind {
			if err := prog.BindMap(coll.Maps[".rodata"]); err != nil {
				log.Fatal(name, ": ", err)
			}
		}
		info, err := prog.Info()
		if err != nil {
			log.Fatal(name, ": ", err)
		}
		id, _ := info.ID()
		fmt.Println(id, name)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}
