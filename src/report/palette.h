#pragma once

namespace strobe::lab {

struct Colour {
  double red, green, blue;
};

/// Colours that people with any kind of sight tell apart (Okabe and Ito's, without the yellow).
inline constexpr Colour kPalette[] = {{0, 114, 178}, {213, 94, 0},   {0, 158, 115}, {204, 121, 167},
                                      {230, 159, 0}, {86, 180, 233}, {85, 85, 85}};

}  // namespace strobe::lab
