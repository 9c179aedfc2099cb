"""SVMs on instances and witnesses: mi-SVM, MI-SVM, their annealed forms, MICA."""
