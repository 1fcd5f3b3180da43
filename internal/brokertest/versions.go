//go:build unix

package brokertest

import (
	"path/filepath"
	"strings"
)

// ArtemisTitle returns the name and version of the Artemis that tests run against: "Artemis 2.56.0".
func ArtemisTitle() string { return "Artemis " + mavenVersion(ArtemisCoordinates) }

// ActiveMQTitle returns the name and version of the ActiveMQ Classic that tests run against.
func ActiveMQTitle() string { return "ActiveMQ Classic " + mavenVersion(ActiveMQCoordinates) }

// RabbitMQTitle returns the name and version of the RabbitMQ that is installed, without the version if there is none.
func RabbitMQTitle() string { return scratchRoot("").rabbitMQTitle() }

// Title returns name and version: "RabbitMQ 4.0.5".
func (r *RabbitMQ) Title() string { return r.root.rabbitMQTitle() }

func (s scratchRoot) rabbitMQTitle() string {
	const prefix = "rabbitmq_server-"
	found, err := filepath.Glob(filepath.Join(s.path(rabbitmqScripts), "..", "lib", prefix+"*"))
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
