package rocketmq

// Names of properties of ours, for what other protocols have and RocketMQ has not.
const (
	propReplyTo     = "REPLY_TO"
	propContentType = "CONTENT_TYPE"
)

const (
	brokerName  = "perfmq"
	clusterName = "DefaultCluster"
)
