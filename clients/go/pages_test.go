package throwbar

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestPages(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		pages map[string][]int
		next  map[string]string
		fails string // the page that cannot be read
		want  []int
		err   string
	}{
		"none":  {want: nil},
		"three": {pages: map[string][]int{"": {1, 2}, "b": nil, "c": {3}}, next: map[string]string{"": "b", "b": "c"}, want: []int{1, 2, 3}},
		"error": {pages: map[string][]int{"": {1}}, next: map[string]string{"": "b"}, fails: "b", want: []int{1}, err: "broken"},
		"circle": {
			pages: map[string][]int{"": {1}, "b": {2}}, next: map[string]string{"": "b", "b": "b"},
			want: []int{1, 2}, err: "INTERNAL: the server gave the same page token twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			said := ""
			for n, err := range Pages(func(token string) ([]int, string, error) {
				if token != "" && token == row.fails {
					return nil, "", broken
				}
				return row.pages[token], row.next[token], nil
			}) {
				if err != nil {
					said += fmt.Sprint(err)
					continue
				}
				got = append(got, n)
			}
			if !slices.Equal(got, row.want) || said != row.err {
				t.Errorf("%v, %q", got, said)
			}
		})
	}
	asked := 0
	for range Pages(func(string) ([]int, string, error) {
		asked++
		return []int{1, 2}, fmt.Sprint(asked), nil
	}) {
		break
	}
	if asked != 1 {
		t.Errorf("asked for %d pages", asked)
	}
}
