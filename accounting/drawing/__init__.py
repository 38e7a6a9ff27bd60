"""What certificates and signature images are drawn with: fonts and QR codes."""
