"""Worker processes: started, spoken to, listened to; which flows each carries."""
