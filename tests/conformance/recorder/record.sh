#!/bin/sh
# Records a directory of scenarios with Apache Kafka Streams: record.sh IN OUT. Needs Java 17 and Maven.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
built=${RECORDER_BUILD:-$here/../../../build/recorder}
mkdir -p "$built/classes"
if [ ! -f "$built/classpath" ] || [ "$here/pom.xml" -nt "$built/classpath" ]; then
    echo "== recorder: fetching Kafka Streams with Maven" >&2
    mvn -q -f "$here/pom.xml" dependency:build-classpath -Dmdep.outputFile="$built/classpath"
fi
javac -d "$built/classes" -cp "$(cat "$built/classpath")" "$here"/src/main/java/recorder/*.java
exec java -Xmx512m -XX:+UseSerialGC -cp "$built/classes:$(cat "$built/classpath")" recorder.Recorder "$1" "$2"
