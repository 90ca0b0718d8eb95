#pragma once

#include <span>
#include <string>
#include <string_view>

namespace remote {

// The only way to put a value into a POSIX shell script: quotes it so that the shell reads back exactly these
// bytes (spaces, quotes, $, backslashes, newlines, UTF-8). A NUL byte cannot be part of a shell word: Error
// (usage).
std::string shell_quote(std::string_view value);

// Quotes a value for a command line that the user will type. A value with newlines becomes $'…', which bash
// and zsh support.
std::string quote_for_typing(std::string_view value);

// Throws Error (usage) for a value with a NUL byte, which cannot be in a variable, an argument or a shell
// script.
void check_value(std::string_view value);

// Joins the words of a command with spaces, with quotes where necessary.
std::string shell_join(std::span<const std::string> words);

// Whether every login shell reads the text unchanged within double quotes in a single-quoted command. It must
// not contain quotes, backslashes, '$', '`', '!' or control characters.
bool is_plain_in_every_shell(std::string_view text);

// Throws Error (usage) unless every shell can set and export a variable with this name: letters, digits and
// '_', not starting with a digit, and not a read-only variable of bash (UID …).
void check_variable(const std::string& name);

// A path on a server as a shell word: "~", "~/x" and relative paths are under $HOME, "/x" is absolute.
std::string remote_path_word(std::string_view path);

}  // namespace remote
