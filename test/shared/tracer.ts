/**
 * A tracer provider that keeps its spans, registered globally until the test under way ends.
 *
 * From effective-agents 0.1.0: test/shared/tracer.ts
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  type ContextManager,
  context,
  type Exception,
  ROOT_CONTEXT,
  type Span,
  type SpanStatus,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { onTestFinished } from "vitest";

export interface KeptSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly status: SpanStatusCode;
  readonly exceptions: readonly Exception[];
  readonly ended: boolean;
}

/** Registers the provider and gives the list that fills with spans, in the order they started. */
export function keepSpans(): readonly KeptSpan[] {
  const spans: RecordedSpan[] = [];
  const startSpan: Tracer["startSpan"] = (name, _options, from = context.active()) => {
    const parent = trace.getSpan(from);
    const span = new RecordedSpan(name, parent instanceof RecordedSpan ? parent.name : undefined);
    spans.push(span);
    return span;
  };
  const startActiveSpan = (name: string, ...rest: readonly unknown[]) => {
    const fn = rest.at(-1) as (span: Span) => unknown; // the last argument, whichever overload it is
    const span = startSpan(name);
    return context.with(trace.setSpan(context.active(), span), () => fn(span));
  };
  // Its overloads can't be written as one arrow function.
  const tracer: Tracer = {
    startSpan,
    startActiveSpan: startActiveSpan as Tracer["startActiveSpan"],
  };
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
  context.setGlobalContextManager(new Contexts().enable());
  onTestFinished(() => {
    trace.disable();
    context.disable();
  });
  return spans;
}

class RecordedSpan implements Span, KeptSpan {
  status = SpanStatusCode.UNSET;
  ended = false;
  readonly exceptions: Exception[] = [];
  readonly name: string;
  readonly parent: string | undefined;

  constructor(name: string, parent: string | undefined) {
    this.name = name;
    this.parent = parent;
  }
  spanContext() {
    return { traceId: "1".repeat(32), spanId: "1".repeat(16), traceFlags: 1 };
  }
  setStatus({ code }: SpanStatus) {
    this.status = code;
    return this;
  }
  recordException(exception: Exception) {
    this.exceptions.push(exception);
  }
  end() {
    this.ended = true;
  }
  isRecording = () => !this.ended;
  setAttribute = () => this;
  setAttributes = () => this;
  addEvent = () => this;
  addLink = () => this;
  addLinks = () => this;
  updateName = () => this;
}

class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  with: ContextManager["with"] = (active, fn, thisArg, ...args) =>
    this.#storage.run(active, () => fn.apply(thisArg, args));
  bind = <T>(_context: Context, target: T) => target;
  enable = () => this;
  disable = () => this;
}
