// Package hangup tells whether the peer of a connection has gone, for front-ends that do not read just now: one that
// waits until there is room for what it has read would not learn that nobody waits with it, and keep the connection
// for as long.
package hangup

import "time"

// Every is how often to look while waiting.
const Every = time.Second
