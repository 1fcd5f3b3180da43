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
func RabbitMQTitle() string {
	const prefix = "rabbitmq_server-"
	found, err := filepath.Glob(filepath.Join(rabbitmqScripts, "..", "lib", prefix+"*"))
	if err != nil || len(found) == 0 {
		return "RabbitMQ"
	}
	return "RabbitMQ " + strings.TrimPrefix(filepath.Base(found[0]), prefix)
}

// mavenVersion is the third part of group:artifact:version:type:classifier.
func mavenVersion(coordinates string) string { return strings.Split(coordinates, ":")[2] }
