package trash

func newBackend(c Config) backend { return newNative(c, newOsascript("/usr/bin/osascript")) }
