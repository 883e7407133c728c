// strobe: verifies, times and compares attention implementations.
#include "cli/run.h"

int main(int argc, char** argv) {
  return strobe::cli::run_and_report({.arguments = {argv + 1, argv + argc}});
}
