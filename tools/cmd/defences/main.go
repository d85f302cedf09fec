// Command defences shows that the tests of Throwbar's defences can fail: it takes out one defence after the other, in an
// overlay that leaves the sources as they are, and runs the test that has to notice. It fails if a test does not notice,
// or if a case does not fit the sources any more.
//
// Run it at the root of the repository as
//
//	go -C tools run ./cmd/defences [-check] [-only regexp] [-tags tags]
//
// The cases are JSON files in tools/defences/cases.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "defences:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("defences", flag.ContinueOnError)
	check := flags.Bool("check", false, "only check that each case fits the sources")
	only := flags.String("only", "", "only cases whose row, defence or test matches this `regexp`")
	tags := flags.String("tags", "sqlite_fts5", "build `tags`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	cases, err := load(filepath.Join(root, "tools", "defences", "cases"))
	if err != nil {
		return err
	}
	bad, ran := 0, 0
	for _, c := range cases {
		if !which.MatchString(c.Row + " " + c.Defence + " " + c.Run) {
			continue
		}
		ran++
		text, err := c.mutated(root)
		if err != nil {
			bad++
			fmt.Printf("STALE  %-13s %s: %v\n", c.Row, c.Defence, err)
			continue
		}
		if *check || c.Command != "" {
			if !*check {
				fmt.Printf("HAND   %-13s %s: %s\n", c.Row, c.Defence, c.Command)
			}
			continue
		}
		verdict, err := c.try(ctx, root, *tags, text)
		if err != nil {
			return err
		}
		if !verdict.noticed {
			bad++
		}
		fmt.Printf("%-6s %-13s %s: %s %s\n", verdict.word(), c.Row, c.Defence, c.Run, verdict.why)
	}
	fmt.Printf("%d cases, %d bad\n", ran, bad)
	if bad > 0 {
		return fmt.Errorf("%d of %d cases are bad", bad, ran)
	}
	return nil
}
