"""What the providers' payment APIs say, compared with what came, and posted where it is missing."""
