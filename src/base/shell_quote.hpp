#pragma once

#include <span>
#include <string>
#include <string_view>

namespace remote {

// The one way by which a value becomes text of a POSIX sh script: quoted so that sh reads exactly these bytes
// back, whatever they are (spaces, quotes, $, backslashes, newlines, UTF-8). A NUL byte cannot stand in a
// shell word: Error (usage).
std::string shell_quote(std::string_view value);

// Quotes a value of a line that a person types again. One with newlines becomes $'…', which bash and zsh
// read.
std::string quote_for_typing(std::string_view value);

// Throws Error (usage) for a value with a NUL byte, which no variable, argument or text of a shell can have.
void check_value(std::string_view value);

// The words of a command, each quoted where it needs it, joined by spaces.
std::string shell_join(std::span<const std::string> words);

// Whether every login shell reads the text as it is, in double quotes of a command in single quotes: it has
// no quotes, backslashes, '$', '`', '!' and control characters.
bool is_plain_in_every_shell(std::string_view text);

// Throws Error (usage) unless every sh can set and export a variable of this name: letters, digits and '_',
// no digit first, and none that bash keeps read-only (UID …).
void check_variable(const std::string& name);

// A path on a server as a shell word: "~" and "~/x" are under $HOME, a relative path too, "/x" is absolute.
std::string remote_path_word(std::string_view path);

}  // namespace remote
