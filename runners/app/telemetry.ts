/**
 * Sends the spans of every step and call to an OpenTelemetry collector, by the settings that all of its
 * SDKs read from the environment: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, …
 */
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

/** Starts it, and gives what sends the last spans at the end. Without a collector there's nothing to do. */
export function startTelemetry(env: NodeJS.ProcessEnv): () => Promise<void> {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: common } = env;
  if (!(own ?? common)) return async () => {};
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return () => provider.shutdown();
}
