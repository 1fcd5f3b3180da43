//go:build unix

package brokertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// asyncIO is the journal type that needs a library of the system.
const asyncIO = "ASYNCIO"

// artemisSettings are the elements of broker.xml that [WithArtemisSetting] sets.
func artemisSettings() []brokerSetting {
	boolean := oneOf("true", "false")
	return []brokerSetting{
		// Of all addresses.
		{name: "address-full-policy", normal: "PAGE", check: oneOf("PAGE", "BLOCK", "FAIL", "DROP")},
		{name: "max-size-bytes", normal: "-1", check: artemisBytes},
		{name: "max-size-messages", normal: "-1", check: count, newOnly: true},
		{name: "page-size-bytes", normal: "10M", check: artemisBytes},
		// Of the broker.
		{name: "global-max-messages", normal: "-1", check: count, newOnly: true},
		{name: "global-max-size", check: artemisBytes},
		{name: "journal-datasync", normal: "true", check: boolean},
		{name: "journal-file-size", normal: "10M", check: artemisBytes},
		{name: "journal-type", normal: "NIO", check: oneOf("NIO", asyncIO, "MAPPED")},
		{name: "max-disk-usage", normal: "-1", check: count}, // percent; no limit
		{name: "persistence-enabled", normal: "true", check: boolean},
	}
}

// ArtemisSettings returns the keys of [WithArtemisSetting].
func ArtemisSettings() []string { return settingNames(artemisSettings()) }

// WithArtemisSetting sets an element of broker.xml: one of the broker, or one of the address setting "#", which holds
// for all addresses without another. Keys are those of [ArtemisSettings]; sizes are in Artemis's notation: 10M. Pages
// are made smaller than max-size-bytes unless page-size-bytes is set.
func WithArtemisSetting(key, value string) ArtemisOption {
	return func(c *artemisConfig) { c.set[key] = value }
}

// WithJavaOptions appends options to those of the broker's JVM. A largest heap and a collector replace ours.
func WithJavaOptions(options ...string) ArtemisOption {
	return func(c *artemisConfig) { c.javaOptions = append(c.javaOptions, options...) }
}

func (c *artemisConfig) validateSet() error {
	if err := checkSettings(c.set, artemisSettings(), c.old); err != nil {
		return err
	}
	page, limit := c.set["page-size-bytes"], c.set["max-size-bytes"]
	pageBytes, err := parseBytes(page)
	limitBytes, limitErr := parseBytes(limit)
	if err == nil && limitErr == nil && limitBytes > 0 && pageBytes >= limitBytes {
		return fmt.Errorf("page-size-bytes=%s is not below max-size-bytes=%s: Artemis demands smaller pages", page, limit)
	}
	return nil
}

// setting is the value of an element of broker.xml.
func (c *artemisConfig) setting(key string) (string, error) {
	if limit, err := parseBytes(c.set["max-size-bytes"]); err == nil && key == "page-size-bytes" && c.set[key] == "" {
		return strconv.FormatInt(AddressLimit{MaxBytes: limit}.pageBytes(), 10), nil
	}
	return settingOr(c.set, artemisSettings(), key)
}

// libraryPath is where the JVM finds the library that ASYNCIO needs, as the instance's own script has it. There
// is a folder for each processor; the JVM takes the library that fits.
func (a *Artemis) libraryPath() string {
	lib := filepath.Join(a.home, "bin", "lib")
	return filepath.Join(lib, "linux-i686") + string(os.PathListSeparator) + filepath.Join(lib, "linux-x86_64")
}

// checkJournal makes an error of a broker that went on with another journal than the one asked for.
func (a *Artemis) checkJournal() error {
	if a.cfg.set["journal-type"] != asyncIO {
		return nil
	}
	text, err := os.ReadFile(a.LogFile())
	if err != nil {
		return fmt.Errorf("read which journal Artemis uses: %w", err)
	}
	if bytes.Contains(text, []byte("AMQ221013")) { // using NIO journal
		return errors.New("Artemis cannot use journal-type=ASYNCIO here and took NIO; install libaio (apt-get install " +
			"libaio1), or set NIO")
	}
	return nil
}
