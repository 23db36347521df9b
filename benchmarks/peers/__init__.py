"""The engine beside what a user would pick instead: CTranslate2 and JoeyNMT, in environments of their own."""
