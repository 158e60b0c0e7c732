"""The same command inside a guest kernel: QEMU (virtme-ng), user-mode Linux, user-mode Linux in virtual time."""
