package rocketmq

// Names of properties of ours, for properties of other protocols that RocketMQ lacks.
const (
	propReplyTo     = "REPLY_TO"
	propContentType = "CONTENT_TYPE"
)

const (
	brokerName  = "perfmq"
	clusterName = "DefaultCluster"
)
