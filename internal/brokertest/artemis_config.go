//go:build unix

package brokertest

import (
	"embed"
	"encoding/xml"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// artemisEtc is the configuration that `artemis create` would write, without the
// parts that no test needs. Written here, it costs no second Java start per broker.
//
//go:embed etc/artemis
var artemisEtc embed.FS

// artemisTemplate has the values that the configuration files refer to.
type artemisTemplate struct {
	BrokerXML   string
	WebPort     int
	Anonymous   bool
	Old         bool // 2.19
	Permissions []string
	Acceptors   []acceptor
	Data        string       // folder of the store
	Pair        *artemisPair // nil of a broker alone
}

func (a *Artemis) writeConfig() error {
	etc := filepath.Join(a.dir, "etc")
	for _, dir := range []string{etc, filepath.Join(a.dir, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create a folder of Artemis: %w", err)
		}
	}
	brokerXML := url.URL{Scheme: "file", Path: filepath.Join(etc, "broker.xml")}
	data := artemisTemplate{
		BrokerXML: brokerXML.String(),
		WebPort:   a.ports.web,
		Anonymous: !a.cfg.login,
		Old:       a.cfg.old,
		Permissions: []string{
			"createNonDurableQueue", "deleteNonDurableQueue", "createDurableQueue", "deleteDurableQueue",
			"createAddress", "deleteAddress", "consume", "browse", "send", "manage",
		},
		Acceptors: a.cfg.acceptors(a.ports, a.certs),
		Data:      "data", Pair: a.pair(),
	}
	if data.Pair != nil {
		data.Data = data.Pair.Data
	}
	templates, err := template.New("").Funcs(template.FuncMap{"xml": escapeXML}).ParseFS(artemisEtc, "etc/artemis/*")
	if err != nil {
		return fmt.Errorf("read the configuration of Artemis: %w", err)
	}
	for _, t := range templates.Templates() {
		if t.Name() == "" {
			continue
		}
		var text strings.Builder
		if err := t.Execute(&text, data); err != nil {
			return fmt.Errorf("fill in %s of Artemis: %w", t.Name(), err)
		}
		if err := os.WriteFile(filepath.Join(etc, t.Name()), []byte(text.String()), 0o600); err != nil {
			return fmt.Errorf("write the configuration of Artemis: %w", err)
		}
	}
	return nil
}

func escapeXML(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
