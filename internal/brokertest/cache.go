//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CacheEnv names the environment variable that overrides the folder for downloads;
// by default it is perfmq-brokertest in the user's cache folder.
const CacheEnv = "PERFMQ_TEST_CACHE"

// cacheDir returns the cache folder, created.
func cacheDir() (string, error) {
	dir := os.Getenv(CacheEnv)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache folder for brokers: %w (set %s to one)", err, CacheEnv)
		}
		dir = filepath.Join(base, "perfmq-brokertest")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve the cache folder for brokers: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder for brokers: %w (set %s to one that can be written)", err, CacheEnv)
	}
	return dir, nil
}

// MavenJar returns the path of a Maven artifact, fetched through mvn into the
// cache when it is not there yet. Coordinates are group:artifact:version with
// :type (default jar) and :classifier optional. It is safe for concurrent use,
// also by several processes.
func MavenJar(ctx context.Context, coordinates string) (string, error) {
	name := artifactFile(coordinates)
	return once(ctx, name, func(tmp string) error { return mvnCopy(ctx, coordinates, tmp, name) })
}

// mavenUnpacked returns the folder of an unpacked tar.gz artifact, without the
// archive's own top folder.
func mavenUnpacked(ctx context.Context, coordinates string) (string, error) {
	name := artifactFile(coordinates)
	return once(ctx, strings.TrimSuffix(name, ".tar.gz"), func(tmp string) error {
		fetched := tmp + ".fetch"
		defer func() { _ = os.RemoveAll(fetched) }()
		if err := mvnCopy(ctx, coordinates, fetched, name); err != nil {
			return err
		}
		if err := os.Mkdir(tmp, 0o755); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		out, err := exec.CommandContext(ctx, "tar", "-xzf", fetched, "-C", tmp, "--strip-components=1").CombinedOutput()
		if err != nil {
			return fmt.Errorf("unpack %s: %w: %s", name, err, lastLines(string(out), 5))
		}
		return nil
	})
}

// once returns the path of a file or folder of the cache, made by the given function when it is missing.
// A file lock lets one process make it while others wait; it is made under
// another name and renamed, so a file with the right name is complete.
func once(ctx context.Context, name string, produce func(tmp string) error) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil { // of one that was killed
		return "", fmt.Errorf("clear %s: %w", tmp, err)
	}
	if err := produce(tmp); err != nil {
		_ = os.RemoveAll(tmp)
		return "", err
	}
	if err := os.Rename(tmp, path); err != nil {
		return "", fmt.Errorf("put %s into the cache: %w", name, err)
	}
	return path, nil
}

// lockFile takes the lock of a file, waiting until the context ends. The lock
// ends with the process at the latest.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock %s: %w", path, err)
	}
	err = poll(ctx, 50*time.Millisecond, func() (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("wait for the lock %s (another test may be fetching): %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// mvnCopy fetches an artifact into the file given. Maven's own settings have the
// repositories.
func mvnCopy(ctx context.Context, coordinates, file, name string) error {
	dir := file + ".d"
	defer func() { _ = os.RemoveAll(dir) }()
	err := mvn(ctx, coordinates, os.TempDir(), // where there is no pom.xml
		"dependency:copy", "-Dartifact="+coordinates, "-DoutputDirectory="+dir)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, name), file); err != nil {
		return fmt.Errorf("fetch %s: mvn did not write the expected file: %w", coordinates, err)
	}
	return nil
}

// mvn runs Maven in a folder, to fetch an artifact or more: what, in messages.
func mvn(ctx context.Context, what, dir string, args ...string) error {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("fetch %s: mvn is not in PATH: install Maven (Debian: apt-get install maven)", what)
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"-q", "-B"}, args...)...) //nolint:gosec // our own arguments
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch %s with mvn: %w (is the repository in Maven's settings.xml reachable?): %s", what, err,
			lastLines(string(out), 10))
	}
	return nil
}

// mavenDependency is an artifact and its unwanted dependencies, as group:artifact.
type mavenDependency struct {
	group, artifact, version string
	without                  []string
}

// mvnClassPath fetches artifacts and all that they need at run time into a folder: Maven resolves the dependencies.
func mvnClassPath(ctx context.Context, dir string, dependencies ...mavenDependency) error {
	name := dependencies[0].artifact
	var pom strings.Builder
	pom.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>perfmq</groupId><artifactId>classpath</artifactId><version>1</version>` +
		`<packaging>pom</packaging><dependencies>`)
	for _, d := range dependencies {
		fmt.Fprintf(&pom, `<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version><exclusions>`,
			d.group, d.artifact, d.version)
		for _, out := range d.without {
			group, artifact, _ := strings.Cut(out, ":")
			fmt.Fprintf(&pom, `<exclusion><groupId>%s</groupId><artifactId>%s</artifactId></exclusion>`, group, artifact)
		}
		pom.WriteString(`</exclusions></dependency>`)
	}
	pom.WriteString(`</dependencies></project>`)
	work := dir + ".pom"
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(work, 0o700); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	file := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(file, []byte(pom.String()), 0o600); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	return mvn(ctx, name, work, "-f", file, "dependency:copy-dependencies", "-DincludeScope=runtime",
		"-DoutputDirectory="+dir)
}

// artifactFile returns the file name of an artifact, as Maven forms it.
func artifactFile(coordinates string) string {
	parts := append(strings.Split(coordinates, ":"), "jar")
	name, kind := parts[1]+"-"+parts[2], parts[3]
	if len(parts) > 5 {
		name += "-" + parts[4]
	}
	return name + "." + kind
}

// jvm returns the options of a virtual machine: full speed for programs that measure; in tests, options that halve the
// processor time of a broker's start, as most tests send only a handful of messages.
func jvm(fullSpeed ...string) []string {
	if testing.Testing() {
		return []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	return slices.Clone(fullSpeed)
}

// javaPath returns the java of JAVA_HOME, or else of PATH.
func javaPath() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path := filepath.Join(home, "bin", "java")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("JAVA_HOME has no java: %w (correct or unset JAVA_HOME)", err)
		}
		return path, nil
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("java is not in PATH: install a JDK 17 or newer (Debian: apt-get install " +
			"openjdk-17-jre-headless), or set JAVA_HOME")
	}
	return path, nil
}

// poll calls check until it says true, fails, or the context ends.
func poll(ctx context.Context, every time.Duration, check func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		done, err := check()
		if done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
