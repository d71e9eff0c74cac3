/**
 * Sends the spans of every step and call to an OpenTelemetry collector, by the settings that all of its
 * SDKs read from the environment: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, …
 */
import { setTimeout } from "node:timers/promises";
import { DiagConsoleLogger, DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

/** How long the app's end waits for a collector, in milliseconds. */
const MAX_FLUSH_MS = 2000;

/** Starts it, and gives what sends the last spans at the end. Without a collector there's nothing to do. */
export function startTelemetry(env: NodeJS.ProcessEnv): () => Promise<void> {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: common } = env;
  if (!(own ?? common)) return async () => {};
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  // Else nobody hears that a collector can't be reached.
  diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);
  return async () => {
    const late = setTimeout(MAX_FLUSH_MS, undefined, { ref: false });
    await Promise.race([provider.shutdown(), late]).catch((error: unknown) => {
      console.error(
        `The last traces weren't sent: ${error instanceof Error ? error.message : error}`,
      );
    });
  };
}
