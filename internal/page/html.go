package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
)

//go:embed assets
var assets embed.FS

// asset returns a file of the folder.
func asset(name string) string {
	text, _ := assets.ReadFile("assets/" + name) // cannot fail: it is in the program
	return string(text)
}

// maxPage bounds the bytes of a page.
const maxPage = 5 << 20

// view is the content of a page.
type view struct {
	Title   string
	Several bool
	Stories []story
	// Lead is the outcome of a sweep, a search or a comparison, Summaries are more sentences on several runs.
	Lead      *story
	Summaries []string
	// Top and Bottom are the tables above and below the charts, without the tables of single runs. Of a sweep or a
	// search the rows of all runs are below.
	Top, Bottom []Table
	// Fold means that a page shows charts over time, and the tables below, on demand.
	Fold bool
	Live string // version of a live page, or ended; empty otherwise

	// Markup of this program, and the JSON of the charts.
	policy, styles string
	scripts        []string
	data           []byte
}

func (p *Page) view() *view {
	runs := p.Runs
	v := &view{Title: p.Title, Several: len(runs) > 1 || p.sweep != nil || p.search != nil}
	for _, r := range runs {
		v.Stories = append(v.Stories, r.story())
	}
	v.Bottom = []Table{messages(runs), latencyTable(runs), replyTable(runs), testers(runs), p.slowTable()}
	switch {
	case p.sweep != nil:
		v.Lead, v.Top = p.sweepVerdict(), p.sweepTables()
	case p.search != nil:
		v.Lead, v.Top = searchVerdict(p.search), []Table{p.searchTable()}
	case v.Several:
		v.Top = v.compare(p.compared())
	case len(runs) > 0:
		s := &v.Stories[0]
		v.Top, s.Tables = s.Tables[:3:3], s.Tables[3:]
	}
	v.Fold = p.sweep != nil || p.search != nil
	return v.clean()
}

// HTML writes the page, which needs no other file and no network.
func (p *Page) HTML(w io.Writer) error { return p.html(w, "") }

func (p *Page) html(w io.Writer, version string) error {
	v := p.view()
	v.Live = version
	var err error
	if v.data, err = json.Marshal(dataOf(p)); err != nil { // it escapes <, > and &, too
		return fmt.Errorf("encode the charts: %w", err)
	}
	v.embed()
	var m markup
	m.page(v)
	if m.Len() > maxPage {
		return fmt.Errorf("the page would have %d bytes, above %d: report fewer runs at once", m.Len(), maxPage)
	}
	_, err = w.Write(m.Bytes())
	return err
}

// scriptNames are the scripts of the page, in their order.
func (v *view) scriptNames() []string {
	list := []string{"uplot/uPlot.iife.min.js", "page.js", "tables.js"}
	if v.Live != "" {
		list = append(list, "live.js")
	}
	if v.Several {
		list = append(list, "several.js")
	}
	return list
}

// embed puts styles, scripts and their policy into the view.
func (v *view) embed() {
	style := asset("uplot/uPlot.min.css") + "\n" + asset("page.css") + "\n" + asset("several.css")
	v.styles = "<style>" + style + "</style>"
	policy := "default-src 'none'; style-src '" + hash(style) + "'; script-src"
	for _, name := range v.scriptNames() {
		text := asset(name)
		v.scripts = append(v.scripts, "<script>"+text+"</script>")
		policy += " '" + hash(text) + "'"
	}
	policy += "; base-uri 'none'; form-action 'none'"
	if v.Live != "" {
		policy += "; connect-src 'self'"
	}
	v.policy = `<meta http-equiv="Content-Security-Policy" content="` + policy + `">`
}

func licence() string {
	return "<!-- Charts are drawn with uPlot 1.6.32, https://github.com/leeoniya/uPlot\n\n" +
		asset("uplot/LICENSE") + "\n-->"
}

// hash returns the source of a policy for a script or style (Content Security Policy Level 3, section 2.3.1).
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// The texts of a result may have any origin. Writers and encoders escape markup; here go characters that mislead
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
