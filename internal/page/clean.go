package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
)

// The texts of a result may have any origin. Templates and encoders escape markup; here go characters that mislead
// readers, such as marks of the direction of writing, and texts that are too long.

// maxItems bounds the items of a list and the rows of a table.
const maxItems = 200

// clean returns the view with texts that are fit to be shown.
func (v *view) clean() *view {
	v.Top, v.Bottom = cutTables(v.Top), cutTables(v.Bottom)
	for i := range v.Stories {
		v.Stories[i].Tables = cutTables(v.Stories[i].Tables)
	}
	return safetext.Each(v, safetext.Line)
}

// cutTables drops the tables without rows, and the rows above maxItems. It adds the notes of assets/notes.txt.
func cutTables(list []Table) []Table {
	list = slices.DeleteFunc(list, func(t Table) bool { return len(t.Rows) == 0 })
	notes := asset("notes.txt")
	for i := range list {
		t := &list[i]
		if _, note, found := strings.Cut("\n"+notes, "\n"+t.Title+": "); found {
			t.Note, _, _ = strings.Cut(note, "\n")
		}
		all := uint64(len(t.Rows)) + t.more
		t.Rows = t.Rows[:min(len(t.Rows), maxItems)]
		if n := len(t.Rows); uint64(n) < all {
			t.Note = strings.TrimSpace(fmt.Sprintf("%s The first %d of %d.", t.Note, n, all))
		}
	}
	return list
}
