"""What can be broken in a running lab, each lever beside its inverse."""
