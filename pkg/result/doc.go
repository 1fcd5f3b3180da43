// Package result holds the result of a run as data, and reads, writes and merges it.
//
// # The folder
//
// A [Writer] keeps a result in a folder and writes as the run continues:
//
//	rows.jsonl     a line with the [Head], then a line per [Row]: JSON Lines, one row a second
//	latencies.hdr  the latencies of each row: a log of HdrHistogram's HistogramLogWriter, format 1.3, in microseconds
//	result.json    the [Result] without its rows, written when the run has ended
//	verify.pv      numbers sent and received, if the run was verified; not of this package: see perfmq verify
//
// [Read] reads such a folder. Without result.json the process was killed, or is still running: Read then sums up the
// totals from the rows, and [Result.Complete] is false. At most the last second is missing.
//
// # Units
//
// Times are whole microseconds: a moment since the Unix epoch, a length, or a latency. Counts are numbers of messages
// unless their comment says otherwise; memory is in bytes. A rate is a count over the row's Length.
//
// [Schema] is the JSON Schema of result.json, and of the lines of rows.jsonl as $defs/Head and $defs/Row.
package result
