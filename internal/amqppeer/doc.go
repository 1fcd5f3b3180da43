// Package amqppeer holds tests of the AMQP 1.0 driver on scripted peers: with behavior that was seen on RabbitMQ 4.0,
// Qpid Broker-J 9.2 and Qpid Proton, and with behavior that the specification allows a broker.
package amqppeer
