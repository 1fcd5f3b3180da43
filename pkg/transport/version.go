package transport

// Version is the version of this program, for peers, results and `perfmq version`. CHANGELOG.md begins with it.
const Version = "0.9.0"
