"""The credit laboratory's pages: experiments that people ask for, and what an app's own results say."""
