module github.com/perfmq/perfmq/examples/driver-mqtt

go 1.26

require (
	github.com/eclipse/paho.golang v0.23.0
	github.com/perfmq/perfmq v0.9.0
)
