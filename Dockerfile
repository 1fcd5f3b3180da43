# A static binary in an empty image, run by a user without rights.
#   docker build -t perfmq .
#   docker run --rm --network host perfmq amqp client --url amqp://127.0.0.1:5672 --duration 10 queue://TEST
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
COPY scenarios scenarios
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /out/ ./cmd/...

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/perfmq /out/perfmq-library /
USER 65534:65534
ENTRYPOINT ["/perfmq"]
