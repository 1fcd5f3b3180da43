//go:build unix

package brokertest

import "fmt"

// activemqSettings are the attributes of activemq.xml that [WithActiveMQSetting] sets.
func activemqSettings() []brokerSetting {
	boolean := oneOf("true", "false")
	return []brokerSetting{
		{name: "enableJournalDiskSyncs", normal: "true", check: boolean},
		{name: "jolokia", normal: "false", check: boolean},
		{name: "journalMaxFileLength", normal: "8mb", check: classicBytes},
		{name: "memoryLimit", check: classicBytes},
		{name: "memoryUsage", check: classicBytes},
		{name: "persistent", normal: "true", check: boolean},
		{name: "schedulerSupport", normal: "false", check: boolean}, // delayed deliveries
		{name: "producerFlowControl", normal: "true", check: boolean},
		{name: "sendFailIfNoSpace", normal: "false", check: boolean},
		{name: "storeUsage", normal: "4 gb", check: classicBytes},
		{name: "tempUsage", normal: "2 gb", check: classicBytes},
	}
}

// ActiveMQSettings returns the keys of [WithActiveMQSetting].
func ActiveMQSettings() []string { return settingNames(activemqSettings()) }

// WithActiveMQSetting sets the value of the attribute of that name in activemq.xml; storeUsage, tempUsage and
// memoryUsage set their limit. [ActiveMQSettings] lists the keys; sizes are in ActiveMQ's notation: "64 mb".
// producerFlowControl and memoryLimit (of one destination) apply to all queues and topics. jolokia=true adds
// Jolokia, for [User] with [Password]; see [ActiveMQ.ManagementURL].
func WithActiveMQSetting(key, value string) ActiveMQOption {
	return func(c *activemqConfig) { c.set[key] = value }
}

// WithActiveMQJavaOptions appends options to those of the broker's JVM. A largest heap and a collector replace ours.
func WithActiveMQJavaOptions(options ...string) ActiveMQOption {
	return func(c *activemqConfig) { c.javaOptions = append(c.javaOptions, options...) }
}

func (c *activemqConfig) validate() error {
	if err := checkSettings(c.set, activemqSettings(), c.coordinates == activemq516Coordinates); err != nil {
		return err
	}
	store, err := c.bytes("storeUsage")
	if err != nil {
		return err
	}
	file, err := c.bytes("journalMaxFileLength")
	if err != nil {
		return err
	}
	if store > 0 && store < file {
		return fmt.Errorf("storeUsage (%d bytes) is below journalMaxFileLength (%d bytes): the store would take no message",
			store, file)
	}
	return checkJavaOptions(c.javaOptions)
}

// setting is the value of an attribute of activemq.xml.
func (c *activemqConfig) setting(key string) (string, error) {
	return settingOr(c.set, activemqSettings(), key)
}

func (c *activemqConfig) bytes(key string) (int64, error) {
	text, err := c.setting(key)
	if err != nil {
		return 0, err
	}
	return parseBytes(text)
}

// policy says whether the configuration has a policy for destinations; the broker's defaults are those of none.
func (c *activemqConfig) policy() bool {
	return c.set["producerFlowControl"] != "" || c.set["memoryLimit"] != ""
}

// jolokia says whether the JVM has its agent.
func (c *activemqConfig) jolokia() bool { return c.set["jolokia"] == "true" }

// ManagementURL returns the URL of Jolokia; empty without the setting jolokia=true.
func (a *ActiveMQ) ManagementURL() string {
	if a.jolo == nil {
		return ""
	}
	return a.jolo.url
}
