package main

import (
	"context"
	"time"

	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

// runWebhook serves the hooks, with certificates of a CA that it keeps in a Secret.
func runWebhook(ctx context.Context, options options) error {
	configuration := config.WebhookConfiguration{SecurePort: options.securePort, HealthzPort: 6080,
		MetricsListenAddress: "0.0.0.0:9402"}
	dynamic := &configuration.TLSConfig.Dynamic
	dynamic.SecretNamespace, dynamic.SecretName = options.secretNamespace, options.secretName
	dynamic.DNSNames, dynamic.LeafDuration = options.dnsNames, 7*24*time.Hour
	server, err := webhook.NewCertManagerWebhookServer(logf.FromContext(ctx, "webhook"), configuration)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
