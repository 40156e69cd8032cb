/** The part of autocannon that the examples use; it has no types of its own. */
declare module 'autocannon' {
  export interface Request {
    readonly path?: string;
    readonly method?: 'GET' | 'POST';
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly onResponse?: (status: number, body: string) => void;
  }
  export interface Options extends Request {
    readonly url: string;
    /** Each connection sends them in turn. */
    readonly requests?: readonly Request[];
    readonly connections?: number;
    /** Seconds. */
    readonly duration?: number;
    /** Seconds until a request counts as failed. */
    readonly timeout?: number;
  }
  export interface Result {
    /** Requests without an answer. */
    readonly errors: number;
    readonly timeouts: number;
    readonly requests: { readonly average: number; readonly total: number };
  }
  export interface Instance extends PromiseLike<Result> {
    on(
      event: 'response',
      listener: (client: unknown, statusCode: number, bytes: number, responseTime: number) => void,
    ): this;
    stop(): void;
  }
  export default function autocannon(options: Options): Instance;
}
