"use strict";

// Posts the provider's answer to the client; the button is for browsers without JavaScript.
document.querySelector("form[data-posts-itself]").submit();
