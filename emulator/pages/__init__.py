"""The emulator's pages: experiments, runs, forms, drawings, downloads."""
