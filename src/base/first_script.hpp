#pragma once

#include <string>
#include <string_view>
#include <vector>

// Finds the script that a user's command runs, without running it.

namespace remote {

struct FirstScript {
  std::string name;                    // as written; "" if none is known
  std::vector<std::string> sourced{};  // the files that the shell reads before it, as in `. ./env.sh`
};

// The file that a line runs first: the script of `python -u train.py`, `A=1 bash run.sh`, `torchrun
// train.py`, `bash -c 'python train.py'` or `set -e; python train.py | tee log`, or the program of `./train`;
// "sub/train.py" for `cd sub && python train.py`. The name is empty if a program on PATH, a module, or a
// command that may create the file or change the folder comes first.
FirstScript find_first_script(std::string_view command);

// The name in find_first_script().
std::string script_of(std::string_view command);

// Whether a text of the shell, such as a file that is sourced, only sets variables and the like: it creates
// no files and does not change the folder.
bool only_sets_variables(std::string_view text);

}  // namespace remote
