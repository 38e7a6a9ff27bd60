"""The pictures of README.md, and the browser that takes them."""
