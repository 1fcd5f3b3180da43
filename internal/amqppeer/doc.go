// Package amqppeer holds tests of AMQP 1.0 drivers on scripted peers: with behavior that was seen on RabbitMQ 4.0, Qpid
// Broker-J 9.2 and Qpid Proton, and with behavior that the specification allows a broker. They belong to no driver:
// clients lists the drivers that they run with, one line each, with the cases that each fails, and why. An exception
// that is not true any more fails the test.
package amqppeer
