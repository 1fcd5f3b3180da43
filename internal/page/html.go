package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

//go:embed assets
var assets embed.FS

// maxPage bounds the bytes of a page.
const maxPage = 5 << 20

// scripts and styles return the assets of the page, in their order.
func scripts() []string { return []string{"assets/uplot/uPlot.iife.min.js", "assets/page.js"} }
func styles() []string  { return []string{"assets/uplot/uPlot.min.css", "assets/page.css"} }

// view is the data of the template.
type view struct {
	Title   string
	Several bool
	Stories []story
	// Overview are tables of all runs.
	Verdicts, Messages, Latencies, Tester Table
	Comparison, Differences               *Table
	// Lead and Tried are of a search: the outcome, and its loads.
	Lead  *story
	Tried *Table
	// Many runs have a row each; the figures of all of them come first.
	Many      bool
	Summaries []string
	Shaded    []Table // of a sweep
	// Only in the page itself, not in the words of a live page.
	Policy, Styles, Licence template.HTML
	Scripts                 []template.HTML
	Data                    template.JS
	Version                 uint64 // version of a live page; 0 otherwise
}

func (p *Page) view() *view {
	runs := p.runs()
	v := &view{
		Title: p.Title, Several: len(runs) > 1, Messages: messages(runs), Latencies: latencyTable(runs),
		Tester: testers(runs),
	}
	for _, r := range runs {
		v.Stories = append(v.Stories, r.story())
	}
	v.Several = v.Several || p.matrix != nil || p.search != nil
	switch {
	case p.matrix != nil:
		v.Verdicts = verdicts(runs)
		v.Summaries = p.matrix.sentences()
		for _, g := range p.matrix.grids() {
			v.Shaded = append(v.Shaded, g.shaded())
		}
		v.Many = len(v.Shaded) > 0
	case p.search != nil:
		v.Lead, v.Tried, v.Many = p.search.verdict(), p.search.table(), true
	case v.Several:
		v.Verdicts = verdicts(runs)
		comparison, summaries := p.comparison()
		v.Comparison, v.Summaries = &comparison, append(p.notes, summaries...)
		if d := p.differences(); len(d.Rows) > 0 {
			v.Differences = &d
		}
	}
	return v.clean()
}

// HTML writes the page, which needs no other file and no network.
func (p *Page) HTML(w io.Writer) error { return p.html(w, 0) }

func (p *Page) html(w io.Writer, version uint64) error {
	v := p.view()
	v.Version = version
	data, err := json.Marshal(dataOf(p)) // escapes <, > and &, too
	if err != nil {
		return fmt.Errorf("encode the charts: %w", err)
	}
	v.Data = template.JS(data) //nolint:gosec // JSON that was just encoded
	if err := v.embed(version > 0); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := render(&b, "page", v); err != nil {
		return err
	}
	if b.Len() > maxPage {
		return fmt.Errorf("the page would have %d bytes, above %d: report fewer runs at once", b.Len(), maxPage)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// words returns the body of the page, which a live page replaces at each version.
func (p *Page) words() (string, error) {
	var b bytes.Buffer
	err := render(&b, "words", p.view())
	return b.String(), err
}

func render(w io.Writer, name string, v *view) error {
	t, err := template.New("page").ParseFS(assets, "assets/page.html")
	if err == nil {
		err = t.ExecuteTemplate(w, name, v)
	}
	if err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	return nil
}

// embed puts styles, scripts and their policy into the view.
func (v *view) embed(live bool) error {
	read := func(name string) ([]byte, error) {
		text, err := assets.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		return text, nil
	}
	var styleText bytes.Buffer
	for _, name := range styles() {
		text, err := read(name)
		if err != nil {
			return err
		}
		styleText.Write(text)
		styleText.WriteByte('\n')
	}
	v.Styles = template.HTML("<style>" + styleText.String() + "</style>") //nolint:gosec // of this program
	policy := "default-src 'none'; style-src '" + hash(styleText.Bytes()) + "'; script-src"
	for _, name := range scripts() {
		text, err := read(name)
		if err != nil {
			return err
		}
		v.Scripts = append(v.Scripts, template.HTML("<script>"+string(text)+"</script>")) //nolint:gosec // of this program
		policy += " '" + hash(text) + "'"
	}
	policy += "; base-uri 'none'; form-action 'none'"
	if live {
		policy += "; connect-src 'self'"
	}
	v.Policy = template.HTML( //nolint:gosec // of this program
		`<meta http-equiv="Content-Security-Policy" content="` + policy + `">`)
	licence, err := read("assets/uplot/LICENSE")
	v.Licence = template.HTML( //nolint:gosec // of this program
		"<!-- Charts are drawn with uPlot 1.6.32, https://github.com/leeoniya/uPlot\n\n" + string(licence) + "\n-->")
	return err
}

// hash returns the source of a policy for a script or style (Content Security Policy Level 3, section 2.3.1).
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
