// <SignIn session="/signin" href="/login" onCompleted={(state) => router.push("/account")}>Sign in</SignIn>
import type { MsgsvcSignIn, State } from "@msgsvc/signin";
import { useEffect, useRef, type HTMLAttributes, type ReactNode, type Ref } from "react";

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "msgsvc-signin": HTMLAttributes<MsgsvcSignIn> & { ref?: Ref<MsgsvcSignIn>; session?: string; inline?: boolean };
    }
  }
}

interface Props {
  session: string;
  href: string;
  inline?: boolean;
  children: ReactNode;
  /** Without it the browser goes where the site says. */
  onCompleted?: (state: State) => void;
}

export function SignIn({ onCompleted, href, children, ...attributes }: Props) {
  const ref = useRef<MsgsvcSignIn>(null);
  useEffect(() => void import("@msgsvc/signin"), []);
  useEffect(() => {
    const element = ref.current!;
    const completed = (event: CustomEvent<State>) => {
      if (!onCompleted) return;
      event.preventDefault();
      onCompleted(event.detail);
    };
    element.addEventListener("msgsvc-signin:completed", completed);
    return () => element.removeEventListener("msgsvc-signin:completed", completed);
  }, [onCompleted]);
  return <msgsvc-signin ref={ref} {...attributes}><a href={href}>{children}</a></msgsvc-signin>;
}
