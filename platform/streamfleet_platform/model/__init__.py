"""What an app and a fleet are: pure, frozen values. Reading them from files is definitions/."""
