//go:build unix

package brokertest

import (
	"path/filepath"
	"strings"
)

// Title returns name and version: "RabbitMQ 4.0.5".
func (r *RabbitMQ) Title() string {
	const prefix = "rabbitmq_server-"
	found, err := filepath.Glob(filepath.Join(r.root.path(rabbitmqScripts), "..", "lib", prefix+"*"))
	if err != nil || len(found) == 0 {
		return "RabbitMQ"
	}
	return "RabbitMQ " + strings.TrimPrefix(filepath.Base(found[0]), prefix)
}

// Title returns name and version: "Artemis 2.19.0".
func (a *Artemis) Title() string { return "Artemis " + mavenVersion(a.cfg.coordinates()) }

// Title returns name and version: "ActiveMQ Classic 5.16.7".
func (a *ActiveMQ) Title() string { return "ActiveMQ Classic " + mavenVersion(a.cfg.coordinates) }

// Title returns name and version: "RocketMQ 4.9.7".
func (r *RocketMQ) Title() string { return "RocketMQ " + r.cfg.version }

// mavenVersion is the third part of group:artifact:version:type:classifier.
func mavenVersion(coordinates string) string { return strings.Split(coordinates, ":")[2] }
