#!/bin/sh
# What scripts/sanitize-gpu makes of tools that find nothing, find something, or cannot look.
set -eu
script=$1
build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/compute-sanitizer" <<'END'
#!/bin/sh
# A stand-in: --tool NAME PROGRAM ARGUMENTS...
tool=$2
shift 2
case " $BLIND " in *" $tool "*) echo "cannot look"; exit 0 ;; esac
"$@" > /dev/null || exit $?
case "$tool $FINDS " in
  racecheck*racecheck*) echo "RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)" ;;
  racecheck*) echo "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  *) echo "ERROR SUMMARY: 0 errors" ;;
esac
END
chmod +x "$folder/compute-sanitizer"
export PATH="$folder:$PATH" FINDS="" BLIND=""
run() { "$script" "$build" quick 1/192 "memcheck racecheck" "$folder/logs" > "$folder/said"; }
says() { grep -q "$1" "$folder/said" || { echo "does not say: $1"; cat "$folder/said"; exit 1; }; }

run
says "memcheck finds nothing in share 1/192 of the quick grid"
says "racecheck finds nothing"
test -s "$folder/logs/sanitizer-racecheck.txt"
if FINDS=racecheck run; then echo "hazards are passed over"; exit 1; fi
says "racecheck finds something"
says "racecheck: RACECHECK SUMMARY: 2 hazards"
says "memcheck finds nothing"
if BLIND=memcheck run; then echo "a tool that could not look is taken for one that found nothing"; exit 1; fi
says "memcheck: cannot look"
