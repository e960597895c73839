"""Sign-ins that other plugins start (hook `register_sign_ins`): on a page of their own, or asked directly."""
